"""What holds for the whole tree: the public names, the imports, the sizes, the requirements, the documents."""
