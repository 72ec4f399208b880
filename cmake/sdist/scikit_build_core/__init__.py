"""A stand-in for the build system that source packages of PyPI name. pip asks it for a package's name and version
before it hands over the file; the real one would be downloaded unpinned and run for that. See cmake/setup.sh."""
