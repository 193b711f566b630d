"""One module a kind of log: what the world looks like in the files a site collects."""
