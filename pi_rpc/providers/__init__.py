"""Who answers: model providers behind one port."""
