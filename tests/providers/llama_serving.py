"""Serves a model file with llama.cpp's own server, on loopback, until standard input ends.

    python llama_serving.py MODEL.gguf

The first line that begins with `http` is the server's address. A process of its own, because the
server writes to standard output as it likes.
"""

import sys

import xllamacpp


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.use_jinja = True
    # Noise, but the same each time.
    params.sampling.seed = 7
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
