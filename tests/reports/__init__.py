"""What users of other compilers reported, as programs of NumPy that run plain and compiled."""
