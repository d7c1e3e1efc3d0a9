package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"kvbooth/sidecar/process"
)

// DynamoVersion is the version of ai-dynamo that the product is made for.
const DynamoVersion = "1.6.1"

// VenvVariable names the environment variable that points to a virtual
// environment with Dynamo, to be used in place of an installation of our own.
const VenvVariable = "KVBOOTH_DYNAMO_VENV"

// dynamoPackages go in without what they depend on: one dependency, aisimulate,
// serves offline predictions only, and fetches itself from elsewhere when it is
// installed. dynamoDependencies are the others, bounded as ai-dynamo bounds them.
var (
	dynamoPackages     = []string{"ai-dynamo==" + DynamoVersion, "ai-dynamo-runtime==" + DynamoVersion}
	dynamoDependencies = []string{
		"aiohttp>=3.14,<4", "certifi", "kubernetes>=32.0.1,<33", "msgspec>=0.19", "prometheus-client>=0.23.1,<1",
		"pyzmq>=26", "redis>=6.2,<9", "tqdm", "transformers>=4.56,<6", "typing-extensions>=4.10",
		"zstandard>=0.23,<1", "uvloop>=0.21", "pydantic>=2.10.6,<=2.13.5",
	}
)

// installedBytes is about what an installation takes on the disk.
const installedBytes = 690 << 20

const (
	lockPoll  = 500 * time.Millisecond
	stopGrace = 5 * time.Second
)

// ErrPip is in the chain of errors of an installation whose packages pip could not
// bring: most often, the package index is out of reach.
var ErrPip = errors.New("pip installed no packages")

// pipError is an [ErrPip] that says what pip said.
type pipError struct{ error }

func (e pipError) Unwrap() []error { return []error{e.error, ErrPip} }

// stampFile is written when an installation is complete.
const stampFile = "installed"

// CacheDir is where the product keeps what it can make again: kvbooth in the
// user's cache folder.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: %w", err)
	}
	return filepath.Join(dir, "kvbooth"), nil
}

// installation is what goes into a virtual environment of its own.
type installation struct {
	name  string     // for people
	venv  string     // its folder
	steps [][]string // what pip installs, one step after the other
	bytes int64      // on the disk, about

	// check says what keeps the environment from being used.
	check func(ctx context.Context, venv string) error
}

// folder is that of an environment with these packages: others get another one.
func folder(cacheDir, name string, steps [][]string) string {
	var all []string
	for _, step := range steps {
		for _, argument := range step {
			if !strings.HasPrefix(argument, "-") {
				all = append(all, argument)
			}
		}
	}
	return filepath.Join(cacheDir, fmt.Sprintf("%s-%.4x", name, sha256.Sum256([]byte(strings.Join(all, "\n")))))
}

// InstallDynamo gives the interpreter of a virtual environment with Dynamo. The
// one that [VenvVariable] points to is taken if it is set, and never changed;
// otherwise there is one in cacheDir, which the first call installs with pip: about
// 690 MB and a minute, with its progress on the writer. An installation that was
// broken off is made anew. Of several processes one installs and the others wait.
func InstallDynamo(ctx context.Context, cacheDir string, progress io.Writer) (python string, err error) {
	if venv := os.Getenv(VenvVariable); venv != "" {
		if err := checkDynamo(ctx, venv); err != nil {
			return "", fmt.Errorf("%s: %w", VenvVariable, err)
		}
		return venvPython(venv), nil
	}
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("Dynamo %s is available for Linux only, and this is %s", DynamoVersion, runtime.GOOS)
	}
	steps := [][]string{append([]string{"--no-deps"}, dynamoPackages...), dynamoDependencies}
	i := installation{
		name: "NVIDIA Dynamo " + DynamoVersion, venv: folder(cacheDir, "dynamo-"+DynamoVersion, steps), steps: steps,
		bytes: installedBytes, check: checkDynamo,
	}
	if err := i.once(ctx, progress); err != nil {
		return "", fmt.Errorf("install Dynamo %s: %w", DynamoVersion, err)
	}
	return venvPython(i.venv), nil
}

// PythonPackage is a package of the Python Package Index that tests hold the product
// against.
type PythonPackage struct {
	Name, Version string
	MB            int // that it takes on the disk with all that it depends on, about
}

// Install gives the interpreter of a virtual environment in cacheDir that has the
// package, as [InstallDynamo] does for Dynamo.
func (p PythonPackage) Install(ctx context.Context, cacheDir string, progress io.Writer) (python string, err error) {
	steps := [][]string{{p.Name + "==" + p.Version}}
	i := installation{
		name: p.Name + " " + p.Version, venv: folder(cacheDir, p.Name+"-"+p.Version, steps), steps: steps,
		bytes: int64(p.MB) << 20, check: p.check,
	}
	if err := i.once(ctx, progress); err != nil {
		return "", fmt.Errorf("install %s: %w", i.name, err)
	}
	return venvPython(i.venv), nil
}

// check says what keeps a virtual environment from having the package.
func (p PythonPackage) check(ctx context.Context, venv string) error {
	out, err := runPython(ctx, venvPython(venv), fmt.Sprintf("import importlib.metadata as m; print(m.version(%q))", p.Name))
	if err != nil {
		return fmt.Errorf("%s has no %s: %w", venv, p.Name, err)
	}
	if got := strings.TrimSpace(string(out)); got != p.Version {
		return fmt.Errorf("%s has %s %s, not %s", venv, p.Name, got, p.Version)
	}
	return nil
}

// once installs what is not there yet.
func (i installation) once(ctx context.Context, progress io.Writer) error {
	return installOnce(ctx, i.venv, i.name, progress, func() bool { return i.installed(ctx) }, func() error { return i.install(ctx, progress) })
}

// installOnce installs what is not there yet. Of several processes one does and the
// others wait for it.
func installOnce(ctx context.Context, path, name string, progress io.Writer, installed func() bool, install func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock := flock.New(path + ".lock")
	ok, err := lock.TryLock()
	if err == nil && !ok {
		fmt.Fprintf(progress, "waiting for another process that is installing %s\n", name)
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if installed() {
		return nil
	}
	return install()
}

// installed says whether an installation is complete and still runs: the Python
// that it was made with may be gone.
func (i installation) installed(ctx context.Context) bool {
	_, err := os.Stat(filepath.Join(i.venv, stampFile))
	return err == nil && i.check(ctx, i.venv) == nil
}

func (i installation) install(ctx context.Context, progress io.Writer) error {
	python, version, err := FindPython(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(i.venv); err != nil {
		return err
	}
	by := installer{venv: i.venv, report: newReport(progress, i.bytes)}
	defer by.report.close()
	by.report.line(fmt.Sprintf("installing %s with Python %s in %s: about %d MB, once", i.name, version, i.venv, i.bytes>>20))
	if err := by.run(ctx, process.Command{Name: "venv", Path: python, Args: []string{"-m", "venv", i.venv}, Env: childEnv()}); err != nil {
		return err
	}
	if err := os.Mkdir(by.temp(), 0o755); err != nil {
		return err
	}
	for _, packages := range i.steps {
		if err := by.pip(ctx, packages); err != nil {
			return err
		}
	}
	if err := i.check(ctx, i.venv); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(by.temp()), os.WriteFile(filepath.Join(i.venv, stampFile), []byte(version+"\n"), 0o644))
}

// installer runs the steps of one installation.
type installer struct {
	venv   string
	report *report
}

// temp takes what pip unpacks on the way. It lies within the folder, so that it
// goes with it where an installation is broken off.
func (i installer) temp() string { return filepath.Join(i.venv, "tmp") }

func (i installer) pip(ctx context.Context, packages []string) error {
	err := i.run(ctx, process.Command{
		Name: "pip", Path: venvPython(i.venv), Env: childEnv("TMPDIR=" + i.temp()),
		Args: append([]string{"-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"}, packages...),
	})
	if err != nil && ctx.Err() == nil {
		return pipError{fmt.Errorf("%w\ncheck that this machine is online and %s has enough space", err, filepath.Dir(i.venv))}
	}
	return err
}

// run runs one step to its end, and reports meanwhile what it says and how large
// the folder has become.
func (i installer) run(ctx context.Context, c process.Command) error {
	c.Log = i.venv + ".log"
	p, err := process.Start(c)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-p.Done():
			return p.Wait()
		case <-ctx.Done():
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
			defer cancel()
			p.Stop(grace)
			return context.Cause(ctx)
		case <-ticker.C:
			i.report.show(DiskUse(i.venv), lastLine(c.Log))
		}
	}
}

// DiskUse adds up the sizes of the files in a folder, in bytes. Files that go
// meanwhile are passed over.
func DiskUse(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone by now
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// lastLine is the last line of a log, without indentation.
func lastLine(log string) string {
	tail := process.Tail(log)
	return strings.TrimSpace(tail[strings.LastIndexByte(tail, '\n')+1:])
}
