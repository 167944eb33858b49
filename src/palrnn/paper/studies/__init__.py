"""The studies, one file each (the two largest: one folder); `palrnn reproduce` finds what is here."""
