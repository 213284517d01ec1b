// Package watchlist lets an operator's namespaces change while it runs: without a restart, and without rights that are wider than
// its scope.
//
//	wl, err := watchlist.FromConfigMap(cfg, "ops", "namespace-scope")
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{NewCache: wl.NewCache()}) // the one line that changes
//	err = mgr.AddReadyzCheck("scope", wl.Ready)
//
// Controllers, indexes and reconcilers stay as they are. The cache remembers their informers, handlers and indexes, and gives
// each namespace a cache of its own, which starts when the namespace joins and ends, with all that it holds, when it leaves.
// Kinds without a namespace, and those for which cache.Options.ByObject names namespaces, are served as controller-runtime serves
// them.
package watchlist
