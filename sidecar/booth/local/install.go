package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"kvbooth/sidecar/process"
)

// DynamoVersion is the supported version of ai-dynamo.
const DynamoVersion = "1.6.1"

// VenvVariable names the environment variable with the folder of a virtual environment with Dynamo. It replaces an
// installation by this package.
const VenvVariable = "KVBOOTH_DYNAMO_VENV"

// dynamoPackages are installed without their dependencies, because one of these, aisimulate, serves offline
// predictions only and downloads itself from another server. dynamoDependencies are the others, with the bounds of
// ai-dynamo.
var (
	dynamoPackages     = []string{"ai-dynamo==" + DynamoVersion, "ai-dynamo-runtime==" + DynamoVersion}
	dynamoDependencies = []string{
		"aiohttp>=3.14,<4", "certifi", "kubernetes>=32.0.1,<33", "msgspec>=0.19", "prometheus-client>=0.23.1,<1",
		"pyzmq>=26", "redis>=6.2,<9", "tqdm", "transformers>=4.56,<6", "typing-extensions>=4.10",
		"zstandard>=0.23,<1", "uvloop>=0.21", "pydantic>=2.10.6,<=2.13.5",
	}
)

// installedBytes is the approximate size of an installation on the disk.
const installedBytes = 690 << 20

const (
	lockPoll  = 500 * time.Millisecond
	stopGrace = 5 * time.Second
)

// ErrPip is in the chain of an error if pip could not install the packages. The most frequent cause is an unreachable
// package index.
var ErrPip = errors.New("pip installed no packages")

// pipError is an [ErrPip] with the output of pip.
type pipError struct{ error }

func (e pipError) Unwrap() []error { return []error{e.error, ErrPip} }

// stampFile marks a complete installation.
const stampFile = "installed"

// CacheDir returns the folder for files that can be made again: kvbooth in the user's cache folder.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: %w", err)
	}
	return filepath.Join(dir, "kvbooth"), nil
}

// installation describes the content of a virtual environment.
type installation struct {
	name  string     // name for messages
	venv  string     // folder
	steps [][]string // arguments of pip, step by step
	bytes int64      // approximate size on the disk

	// derive returns further packages, once those of the first step are installed. nil: none.
	derive func(venv string) (packages []string, err error)
	// check returns an error if the environment cannot be used.
	check func(ctx context.Context, venv string) error
}

// folder returns the folder of an environment with these packages. Other packages have another folder.
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

// InstallDynamo returns the interpreter of a virtual environment with Dynamo. If [VenvVariable] is set, it returns
// the interpreter of that environment, which it never changes. Otherwise the environment is in cacheDir. The first
// call installs it with pip, about 690 MB and a minute, and writes its progress. An interrupted installation is
// repeated. Of several processes, one installs and the others wait.
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
	return installation{
		name: "NVIDIA Dynamo " + DynamoVersion, venv: folder(cacheDir, "dynamo-"+DynamoVersion, steps), steps: steps,
		bytes: installedBytes, check: checkDynamo,
	}.python(ctx, progress)
}

// PythonPackage is a package of the Python Package Index: a router, or a tool that tests compare the product with.
type PythonPackage struct {
	Name, Version string
	Extras        string // optional parts, in brackets
	MB            int    // approximate size on the disk with all dependencies
}

// Install returns the interpreter of a virtual environment in cacheDir with the package, like [InstallDynamo] for
// Dynamo.
func (p PythonPackage) Install(ctx context.Context, cacheDir string, progress io.Writer) (python string, err error) {
	return installation{
		name: p.Name + " " + p.Version, venv: p.folder(cacheDir), steps: p.steps(),
		bytes: int64(p.MB) << 20, check: p.check,
	}.python(ctx, progress)
}

func (p PythonPackage) steps() [][]string { return [][]string{{p.Name + p.Extras + "==" + p.Version}} }

func (p PythonPackage) folder(cacheDir string) string {
	return folder(cacheDir, p.Name+"-"+p.Version, p.steps())
}

// check returns an error if a virtual environment does not have the package.
func (p PythonPackage) check(ctx context.Context, venv string) error {
	code := fmt.Sprintf("import importlib.metadata as m; print(m.version(%q))", p.Name)
	out, err := runPython(ctx, venvPython(venv), code)
	if err != nil {
		return fmt.Errorf("%s has no %s: %w", venv, p.Name, err)
	}
	if got := strings.TrimSpace(string(out)); got != p.Version {
		return fmt.Errorf("%s has %s %s, not %s", venv, p.Name, got, p.Version)
	}
	return nil
}

// python installs the packages if necessary, and returns the interpreter.
func (i installation) python(ctx context.Context, progress io.Writer) (string, error) {
	installed := func() bool { return i.installed(ctx) }
	install := func() error { return i.install(ctx, progress) }
	if err := installOnce(ctx, i.venv, i.name, progress, installed, install); err != nil {
		return "", fmt.Errorf("install %s: %w", i.name, err)
	}
	return venvPython(i.venv), nil
}

// installOnce calls install unless installed returns true. Of several processes, one installs and the others wait.
func installOnce(
	ctx context.Context, path, name string, progress io.Writer, installed func() bool, install func() error,
) error {
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

// installed reports whether an installation is complete and still runs. It may fail to run if its Python was removed.
func (i installation) installed(ctx context.Context) bool {
	return stamped(i.venv) && i.check(ctx, i.venv) == nil
}

// stamped reports whether an installation was completed.
func stamped(venv string) bool {
	_, err := os.Stat(filepath.Join(venv, stampFile))
	return err == nil
}

func (i installation) install(ctx context.Context, progress io.Writer) error {
	python, version, err := FindPython(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(i.venv); err != nil {
		return err
	}
	step := installer{venv: i.venv, report: newReport(progress, i.bytes)}
	defer step.report.close()
	step.report.line(fmt.Sprintf("installing %s with Python %s in %s: about %d MB, once",
		i.name, version, i.venv, i.bytes>>20))
	makeVenv := process.Command{Name: "venv", Path: python, Args: []string{"-m", "venv", i.venv}, Env: childEnv()}
	if err := step.run(ctx, makeVenv); err != nil {
		return err
	}
	if err := os.Mkdir(step.temp(), 0o755); err != nil {
		return err
	}
	for n, packages := range i.steps {
		if err := step.pip(ctx, packages); err != nil {
			return err
		}
		if n > 0 || i.derive == nil {
			continue
		}
		packages, err := i.derive(i.venv)
		if err == nil {
			err = step.pip(ctx, packages)
		}
		if err != nil {
			return err
		}
	}
	if err := i.check(ctx, i.venv); err != nil {
		return err
	}
	stamp := filepath.Join(i.venv, stampFile)
	return errors.Join(os.RemoveAll(step.temp()), os.WriteFile(stamp, []byte(version+"\n"), 0o644))
}

// installer runs the steps of one installation.
type installer struct {
	venv   string
	report *report
}

// temp returns the folder for temporary files of pip. It is inside the environment, so that it is removed with an
// interrupted installation.
func (i installer) temp() string { return filepath.Join(i.venv, "tmp") }

func (i installer) pip(ctx context.Context, packages []string) error {
	err := i.run(ctx, process.Command{
		Name: "pip", Path: venvPython(i.venv), Env: childEnv("TMPDIR=" + i.temp()),
		Args: append([]string{
			"-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off",
		}, packages...),
	})
	if err != nil && ctx.Err() == nil {
		return pipError{fmt.Errorf("%w\ncheck that this machine is online and %s has enough space", err,
			filepath.Dir(i.venv))}
	}
	return err
}

// run runs one step to its end. Meanwhile it reports the last line of the output and the size of the folder.
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

// DiskUse returns the total size of the files in a folder, in bytes. Files that disappear meanwhile are skipped.
func DiskUse(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the file has disappeared
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// lastLine returns the last line of a log, without indentation.
func lastLine(log string) string {
	tail := process.Tail(log)
	return strings.TrimSpace(tail[strings.LastIndexByte(tail, '\n')+1:])
}

const oldestPython = 10 // minor version; Dynamo's wheels are for 3.10 and later

// pythons are looked up on the PATH in this order: the system's Python first, then the versions with the most wheels.
var pythons = []string{"python3", "python3.12", "python3.13", "python3.11", "python3.10", "python3.14", "python"}

// probe prints the version first, so that it is known even if a module is missing.
const probe = `import sys; print("%d.%d.%d" % sys.version_info[:3]); sys.stdout.flush(); import ensurepip, venv`

const probeTimeout = 20 * time.Second

// FindPython returns the path and the version of the first suitable Python on the PATH: 3.10 or later, able to make
// virtual environments. If there is none, the error lists the interpreters that were tried with their problems, and how
// to install one. If ctx ends first, the error is that of ctx.
func FindPython(ctx context.Context) (path, version string, err error) {
	var tried []string
	for _, name := range pythons {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := checkPython(ctx, path)
		if err == nil {
			return path, version, nil
		}
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", path, err))
	}
	found := "there is no python3 in the PATH"
	if len(tried) > 0 {
		found = "none of these is suitable: " + strings.Join(tried, ", ")
	}
	return "", "", fmt.Errorf("no suitable Python for NVIDIA Dynamo: "+
		`it needs Python 3.%d or later with the venv module, and %s.
Install it, for instance with
  apt install python3 python3-venv   (Debian, Ubuntu)
  dnf install python3                (Fedora, RHEL)
or set %s to a virtual environment that has ai-dynamo %s`, oldestPython, found, VenvVariable, DynamoVersion)
}

// checkPython returns the version of an interpreter, or an error if it is unsuitable.
func checkPython(ctx context.Context, path string) (string, error) {
	out, err := runPython(ctx, path, probe)
	version, _, _ := strings.Cut(string(out), "\n")
	version = strings.TrimSpace(version)
	if version == "" {
		return "", fmt.Errorf("cannot be run: %w", err)
	}
	parts := strings.Split(version, ".")
	minor := 0
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	if parts[0] != "3" || minor < oldestPython {
		return "", fmt.Errorf("version %s is too old", version)
	}
	if err != nil {
		return "", fmt.Errorf("version %s lacks the venv module", version)
	}
	return version, nil
}

// checkDynamo returns an error if a virtual environment cannot run Dynamo.
func checkDynamo(ctx context.Context, venv string) error {
	out, err := runPython(ctx, venvPython(venv),
		`import importlib.metadata as m; print(m.version("ai-dynamo"), m.version("ai-dynamo-runtime"))`)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not a virtual environment: %w", venv, err)
	}
	if err != nil {
		return fmt.Errorf("%s has no ai-dynamo with its ai-dynamo-runtime: %w", venv, err)
	}
	if got, want := strings.TrimSpace(string(out)), DynamoVersion+" "+DynamoVersion; got != want {
		return fmt.Errorf("%s has ai-dynamo and ai-dynamo-runtime %s, not %s", venv, got, want)
	}
	return nil
}

func venvPython(venv string) string { return filepath.Join(venv, "bin", "python") }

// runPython runs code and returns its output.
func runPython(ctx context.Context, path, code string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-c", code)
	cmd.Env = childEnv()
	return cmd.Output()
}

// childEnv returns the environment of this process without variables that change the behavior of Python or Dynamo,
// plus the given ones.
func childEnv(more ...string) []string {
	var env []string
	for _, variable := range process.Environment() {
		if !strings.HasPrefix(variable, "PYTHON") && !strings.HasPrefix(variable, "DYN_") {
			env = append(env, variable)
		}
	}
	return append(env, more...)
}
