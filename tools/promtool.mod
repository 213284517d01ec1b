module github.com/ambit-k8s/ambit/tools

go 1.26.3

// Only for promtool and prometheus, and beside go.mod: go mod tidy asks for the clouds that they are built without
// (-tags remove_all_sd).

require github.com/prometheus/prometheus v0.315.0
