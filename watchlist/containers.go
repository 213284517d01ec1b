package watchlist

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// Containers of one pod have one token, and so one Lease. None of them may tell a list for the others: each writes down what it
// has taken in itself, and the Lease tells a list that all of them have.

// containerPrefix begins the annotations of single containers, "<ConfigMap>/<hash>".
const containerPrefix = hashAnnotation + "-"

// container is by what a container is known among those of its pod: what runs in it, since nothing else is the same after it
// restarted. Two that run the same with the same arguments are known as one.
func container() string {
	program := ""
	if info, known := debug.ReadBuildInfo(); known {
		program = info.Path
	}

	return containerOf(program, os.Args)
}

// containerOf takes the package path of a program besides its command line: many images call their program /manager, and give it
// no arguments.
func containerOf(program string, args []string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{program}, args...), "\x00")))

	return hex.EncodeToString(sum[:6])
}

// among are the annotations of a Lease by which a container tells what it has taken in, given those that are there.
func among(present map[string]string, container, configMap, hash string) map[string]string {
	out := map[string]string{listAnnotation: configMap, hashAnnotation: hash, containerPrefix + container: configMap + "/" + hash}
	taken := []string{hash}

	for name, says := range present {
		if !strings.HasPrefix(name, containerPrefix) || name == containerPrefix+container {
			continue
		}

		out[name] = says

		if of, also, _ := strings.Cut(says, "/"); of == configMap {
			taken = append(taken, also)
		}
	}

	slices.Sort(taken)

	// While they differ, the Lease tells what no list is known by.
	if taken = slices.Compact(taken); len(taken) > 1 {
		sum := sha256.Sum256([]byte(strings.Join(taken, "\x00")))
		out[hashAnnotation] = hex.EncodeToString(sum[:])
	}

	return out
}
