"""The families of surrogates that come with the package, one file each."""
