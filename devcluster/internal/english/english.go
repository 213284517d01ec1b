// Package english keeps kubectl from loading its translations, for which it packs an archive each time it starts: that is half of
// what starting takes. Whoever imports it need not call anything.
package english

import "k8s.io/kubectl/pkg/util/i18n"

// Packages are initialized in the order of their import paths, once what they import is initialized, so this one comes before
// those of kubectl that translate while they are initialized. If it came later, they would have loaded the translations, and
// nothing else would be different.
var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
