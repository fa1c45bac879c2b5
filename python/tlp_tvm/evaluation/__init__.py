"""How well scores rank programs: top-k, rank correlation, and what chance gives."""
