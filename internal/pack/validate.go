package pack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Environment variables of the plugin validator.
const (
	// ValidatorVariable names Grafana's plugin validator, if it is not on the PATH.
	ValidatorVariable = "PLUGIN_VALIDATOR"
	// ValidatorSourceVariable names another repository than [validatorSource] to build it from: a URL or a folder.
	ValidatorSourceVariable = "PLUGIN_VALIDATOR_SOURCE"
)

// validatorSource is where [BuildValidator] gets the sources.
const validatorSource = "https://github.com/grafana/plugin-validator"

// ValidatorConfig is the configuration with the enabled analyzers, and the reasons for disabled ones.
const ValidatorConfig = "tools/plugin-validator/config.yaml"

// ErrNoValidator means that the plugin validator is not installed.
var ErrNoValidator = errors.New("plugincheck2, Grafana's plugin validator, was not found")

// FindValidator returns the path of the plugin validator: that of [ValidatorVariable], otherwise plugincheck2 on the
// PATH, otherwise the one at built, where [BuildValidator] has built it. Without one, it returns [ErrNoValidator].
func FindValidator(built string) (string, error) {
	if path := os.Getenv(ValidatorVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", ValidatorVariable, err)
		}
		return path, nil
	}
	if path, err := exec.LookPath("plugincheck2"); err == nil {
		return path, nil
	}
	if _, err := os.Stat(built); err != nil {
		return "", ErrNoValidator
	}
	return built, nil
}

// BuildValidator builds the plugin validator from its repository, without the scanner that asks osv.dev, whose modules
// are most of what it needs. It takes some minutes. Without the repository, the error says how to name another one.
func BuildValidator(ctx context.Context, out io.Writer, to string) error {
	dir, err := os.MkdirTemp("", "plugin-validator-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := cmp.Or(os.Getenv(ValidatorSourceVariable), validatorSource)
	work, repository := filepath.Join(dir, "work"), source
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		repository = filepath.Join(dir, "git")
		if err := run(ctx, out, "git", "clone", "--quiet", "--bare", "--depth=1", source, repository); err != nil {
			return fmt.Errorf("%w: %w; %s names its repository, %s a program", ErrNoValidator, err,
				ValidatorSourceVariable, ValidatorVariable)
		}
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	err = run(ctx, out, "git", "--git-dir="+repository, "--work-tree="+work, "checkout", "--quiet", "--force", "HEAD",
		"--", ".", ":(exclude)*/testdata/*")
	if err != nil {
		return err
	}
	passes := filepath.Join(work, "pkg", "analysis", "passes")
	for _, name := range []string{"analysis.go", "llmreview/llmreview.go", "codediff/codediff.go"} {
		if err := withoutScanner(filepath.Join(passes, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "building the plugin validator")
	return run(ctx, out, "go", "build", "-C", work, "-buildvcs=false", "-o", to, "./pkg/cmd/plugincheck2")
}

// scanner matches the lines that use the analyzer osv-scanner.
var scanner = regexp.MustCompile(`(?m)^.*(passes/osvscanner"|osvscanner\.Analyzer,)\n`)

// withoutScanner removes the use of the scanner from a source of the validator.
func withoutScanner(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, scanner.ReplaceAll(text, nil), 0o600)
}

// run runs a command with its output.
func run(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// Validate runs the program validator on an archive, once for each enabled analyzer of the configuration file, with the
// working directory, the module's root, as the source. It writes findings to out. It returns the number of enabled
// analyzers, and a joined error of those with errors or warnings and of ctx.
func Validate(ctx context.Context, out io.Writer, validator, config, archive string) (analyzers int, err error) {
	names, err := analyzersOf(config)
	if err != nil {
		return 0, err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "running %d analyzers on %s\n", len(names), archive)
	var failed []error
	for _, name := range names {
		cmd := exec.CommandContext(ctx, validator, "-config", config, "-strict", "-analyzer", name,
			"-sourceCodeUri", "file://"+filepath.ToSlash(root), archive)
		output, err := cmd.CombinedOutput()
		if text := bytes.TrimSpace(output); len(text) > 0 {
			fmt.Fprintf(out, "%s: %s\n", name, text)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			failed = append(failed, ctx.Err())
			break
		}
	}
	return len(names), errors.Join(failed...)
}

// analyzersOf returns the enabled analyzers of a configuration in order.
func analyzersOf(config string) ([]string, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, err
	}
	var c struct{ Analyzers map[string]analyzer }
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", config, err)
	}
	maps.DeleteFunc(c.Analyzers, func(_ string, a analyzer) bool { return a.Enabled != nil && !*a.Enabled })
	return slices.Sorted(maps.Keys(c.Analyzers)), nil
}

type analyzer struct{ Enabled *bool }
