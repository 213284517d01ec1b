package testcluster

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// SeedVariable names the number from which a test draws its random cases; 1 if it is not set. So what failed once fails again.
const SeedVariable = "AMBIT_SEED"

// Seed returns the number of this run, and writes it to the test's log.
func Seed(t testing.TB) uint64 {
	t.Helper()

	seed := uint64(1)

	if s := os.Getenv(SeedVariable); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q; give a number", SeedVariable, s)
		}

		seed = n
	}

	t.Logf("%s=%d", SeedVariable, seed)

	return seed
}

// Draws returns the same random numbers in every run with one seed. Different streams give different numbers.
func Draws(t testing.TB, stream uint64) *rand.Rand {
	t.Helper()

	return rand.New(rand.NewPCG(Seed(t), stream))
}
