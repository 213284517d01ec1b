package scope

import "strconv"

// ParseVersion reads a resource version as the number that it is (comparable since Kubernetes 1.35, KEP-5504, and in
// practice ever since etcd 3). One that is no number becomes 0, which orders before everything and decides nothing.
func ParseVersion(v string) uint64 {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0
	}

	return n
}
