module github.com/seed-e1736cc0/ipcbench

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da
	golang.org/x/sys v0.50.0
)

require (
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

tool (
	github.com/seed-e1736cc0/ipcbench/internal/cmd/noisefloor
	golang.org/x/perf/cmd/benchstat
)
