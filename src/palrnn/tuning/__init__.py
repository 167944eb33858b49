"""Learning by evidence: particle-SAEM on windows."""
