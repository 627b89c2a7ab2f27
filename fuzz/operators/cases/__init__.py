"""What is drawn of each operator and the reference of its results, by topic; `sampling.load_cases` imports every module here."""
