// Command mutate measures how many deliberate faults the tests of a package find. It puts a sample of faults
// (mutants) into the package at once, each behind a number, compiles its tests once, and runs them once for each
// number. A mutant that makes a test fail is killed. Tests of further packages can be tried on what survives.
//
// The sample depends on the code outside tests and on the seed alone, so the same mutants can be tried on two
// versions of the tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/tools/go/packages"
)

func main() {
	n := flag.Int("n", 200, "mutants to try in each package; 0 tries all")
	seed := flag.Uint64("seed", 1, "seed of the sample")
	jobs := flag.Int("jobs", runtime.NumCPU(), "test processes at once")
	only := flag.String("only", "", "comma-separated numbers of mutants to try, to look at them again")
	list := flag.Bool("v", false, "list every mutant, not only the survivors")
	also := flag.String("also", "", "comma-separated packages whose tests are tried on what a package's own leave")
	flag.Parse()
	if err := run(*n, *seed, *jobs, *only, *also, *list, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(n int, seed uint64, jobs int, only, also string, list bool, patterns []string) error {
	loaded, err := load(packages.LoadSyntax, patterns)
	if err != nil {
		return err
	}
	var others []*packages.Package
	if also != "" {
		if others, err = load(packages.NeedName|packages.NeedFiles, strings.Split(also, ",")); err != nil {
			return err
		}
	}
	for _, p := range loaded {
		if len(p.GoFiles) == 0 {
			continue
		}
		chosen := sample(sites(p), n, seed)
		if err := measure(p, others, chosen, jobs, only, list); err != nil {
			return fmt.Errorf("%s: %w", p.PkgPath, err)
		}
	}
	return nil
}

func load(mode packages.LoadMode, patterns []string) ([]*packages.Package, error) {
	loaded, err := packages.Load(&packages.Config{Mode: mode}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, errors.New("the packages do not compile")
	}
	return loaded, nil
}

// tests are the compiled tests of one package.
type tests struct {
	binary, home string
	limit        time.Duration // of a run with a mutant
	reached      map[int]bool  // mutants that a run without any passes
}

// measure tries the mutants of a package on its own tests, then what is left on those of others, and prints the result.
func measure(p *packages.Package, others []*packages.Package, mutants []site, jobs int, only string, list bool) error {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(p, mutants, dir)
	if err != nil {
		return err
	}
	results := make([]string, len(mutants))
	for i := range mutants {
		if only == "" || slices.Contains(strings.Split(only, ","), strconv.Itoa(i)) {
			results[i] = "not reached"
		}
	}
	killed := 0
	for _, by := range append([]*packages.Package{p}, others...) {
		began := time.Now()
		t, err := compile(by, overlay, dir)
		if err != nil {
			return err
		}
		n := t.try(results, jobs)
		killed += n
		fmt.Printf("%s: the tests of %s kill %d of %d mutants, together %.1f %%, in %.0f s\n",
			p.PkgPath, by.PkgPath, n, len(mutants), 100*float64(killed)/float64(len(mutants)), time.Since(began).Seconds())
	}
	for i, m := range mutants {
		if list && results[i] != "" || results[i] != "killed" && results[i] != "" {
			fmt.Printf("%4d %-11s %s\n", i, results[i], m)
		}
	}
	return nil
}

// try runs the tests once for each mutant that is left, and returns how many it killed.
func (t *tests) try(results []string, jobs int) int {
	var wg sync.WaitGroup
	var killed atomic.Int64
	tickets := make(chan struct{}, jobs)
	for i := range results {
		if results[i] == "killed" || results[i] == "" || !t.reached[i] {
			continue
		}
		wg.Go(func() {
			tickets <- struct{}{}
			defer func() { <-tickets }()
			results[i] = "survived"
			if _, err := t.run(t.limit, "MUTANT="+strconv.Itoa(i)); err != nil {
				results[i] = "killed"
				killed.Add(1)
			}
		})
	}
	wg.Wait()
	return int(killed.Load())
}

// writeOverlay writes the package with the mutants in place, and returns the file for the flag -overlay.
func writeOverlay(p *packages.Package, mutants []site, dir string) (string, error) {
	overlay := map[string]string{}
	write := func(original string, text []byte) error {
		to := filepath.Join(dir, strconv.Itoa(len(overlay))+".go")
		overlay[original] = to
		return os.WriteFile(to, text, 0o600)
	}
	for file, text := range rewritten(p, mutants) {
		if err := write(file, text); err != nil {
			return "", err
		}
	}
	runtimeFile := filepath.Join(filepath.Dir(p.GoFiles[0]), "zz_mutants.go")
	if err := write(runtimeFile, []byte("package "+p.Name+mutantRuntime)); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// compile builds a package's tests with the overlay, and runs them without a mutant.
func compile(p *packages.Package, overlay, dir string) (*tests, error) {
	t := &tests{binary: filepath.Join(dir, "test"), home: filepath.Dir(p.GoFiles[0])}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", t.binary, p.PkgPath)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	reached := filepath.Join(dir, "reached")
	os.Remove(reached) // of the package before
	began := time.Now()
	if out, err := t.run(10*time.Minute, "MUTANT_REACHED="+reached); err != nil {
		return nil, fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
	}
	took := time.Since(began)
	t.limit = max(2*took, took+20*time.Second)
	t.reached = numbers(reached)
	return t, nil
}

// memoryKB bounds the address space of a test whose loop does not end.
const memoryKB = 8 << 20

// run runs the tests in the package's folder. It ends the process and its children after the limit.
func (t *tests) run(limit time.Duration, env string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	script := fmt.Sprintf("ulimit -v %d; exec %q -test.failfast", memoryKB, t.binary)
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = t.home, append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.CombinedOutput()
}

// numbers reads the numbers that a run has appended to a file.
func numbers(file string) map[int]bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	found := map[int]bool{}
	for line := range strings.Lines(string(text)) {
		if i, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			found[i] = true
		}
	}
	return found
}

// mutantRuntime is what the faults in a package call.
const mutantRuntime = `

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var mutantActive = func() int {
	i, err := strconv.Atoi(os.Getenv("MUTANT"))
	if err != nil {
		return -1
	}
	return i
}()

var (
	mutantFile = os.Getenv("MUTANT_REACHED")
	mutantSeen sync.Map
)

// mutant reports whether fault i is on.
func mutant(i int) bool {
	if mutantFile != "" {
		if _, seen := mutantSeen.LoadOrStore(i, true); !seen {
			if f, err := os.OpenFile(mutantFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				fmt.Fprintln(f, i)
				f.Close()
			}
		}
	}
	return i == mutantActive
}

func mutantError(i int, err error) error {
	if mutant(i) {
		return nil
	}
	return err
}

func mutantMath[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64](i int, op byte, a, b T) T {
	if mutant(i) {
		switch op {
		case '+':
			op = '-'
		case '-':
			op = '+'
		case '*':
			op = '/'
		default:
			op = '*'
		}
	}
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	}
	return a / b
}
`
