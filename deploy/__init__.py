"""Ways to run the pipeline on more than one process and one file."""
