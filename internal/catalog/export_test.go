package catalog

// Package returns a package, or nil.
func (c *Catalog) Package(name string) *Package { return c.packages[name] }

// Version returns a ClusterServiceVersion, or nil.
func (c *Catalog) Version(name string) *Version { return c.versions[name] }
