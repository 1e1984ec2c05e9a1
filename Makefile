# What a fresh machine with Go needs is installed by the target that needs it.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: test lint race fuzz bench bench-once tools build

test: tools ## everything that has a right answer
	go test ./...
	cd bench && go test ./...

build:
	go build -o bin/comporta ./cmd/comporta

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt: the files above are not formatted'; exit 1; }
	go vet ./...
	cd bench && go vet ./...
	go run $(STATICCHECK) ./...
	cd bench && go run $(STATICCHECK) ./...

race: tools ## but for the rooms whose processes are built without the detector
	go test -race $$(go list ./... | grep -v -e /internal/callers -e /internal/chaos -e /internal/siege)

fuzz: ## each target for a while: make fuzz FUZZTIME=1m
	scripts/fuzz.sh $(or $(FUZZTIME),10s)

bench-once: ## each benchmark once: do they still run?
	go test -run '^$$' -bench . -benchtime 1x ./...

bench: tools build ## one table with ratios; wants a quiet machine, and some twenty minutes
	cd bench && go run . -write ../docs/benchmarks.md
	cd bench && go run ./gateway -write ../docs/benchmarks.md
	cd bench && go run ./redis -write ../docs/benchmarks.md

tools: ## the load tool and the proxies that tests and benchmarks stand beside
	scripts/tools.sh
