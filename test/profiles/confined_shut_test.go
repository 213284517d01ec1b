package profiles_test

import (
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// servesNobody has a group name only targets whose owners have not let its operators in, or no longer do.
func (c *confined) servesNobody() {
	group, installed, further := c.operatorGroup(teapots), c.csv(teapots, "teapot"), c.csv(teapots, "samovar")
	shut := "ambit authorize stranger --to teapots --installs"

	serves := func(want bool) {
		c.Helper()

		if out, code := c.Ambit("operators", "-n", stranger); code != 0 || strings.Contains(out, "served") != want {
			c.Errorf("operators ended with %d, want %s to be served: %t: %s", code, stranger, want, out)
		}
	}

	c.Make(further)
	c.grant(further, teapots)
	c.becomes(further, olm.CSVPhaseSucceeded)
	c.Remove(further)
	c.nothingIn(stranger)

	c.Change(group, func() { group.Spec.TargetNamespaces = []string{stranger} })
	c.becomes(installed, olm.CSVPhaseFailed, shut)
	serves(false)

	further = c.csv(teapots, "samovar")
	c.Make(further)
	c.becomes(further, olm.CSVPhaseFailed, shut)
	c.MayNot(teapots, "samovar", teapots, "get configmaps")

	c.authorize(stranger, teapots)
	c.becomes(installed, olm.CSVPhaseSucceeded)
	c.becomes(further, olm.CSVPhaseSucceeded)
	c.May(teapots, "samovar", stranger, "get configmaps")
	serves(true)

	if out, code := c.Ambit("revoke", stranger, "--to", teapots, "--installs"); code != 0 {
		c.Fatalf("revoking ended with %d: %s", code, out)
	}

	c.becomes(installed, olm.CSVPhaseFailed, shut)
	serves(false)
	c.Remove(further)
	c.Change(group, func() { group.Spec.TargetNamespaces = []string{teapots} })
	c.becomes(installed, olm.CSVPhaseSucceeded)
}
