module github.com/ambit-k8s/ambit/tools

go 1.26.3

// Only for actionlint, and beside go.mod: another tool needs a newer YAML parser than actionlint compiles with.

require github.com/rhysd/actionlint v1.7.12
