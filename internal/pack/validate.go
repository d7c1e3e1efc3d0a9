package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ValidatorVariable names the environment variable with the path of Grafana's plugin validator, if it is not on the
// PATH.
const ValidatorVariable = "PLUGIN_VALIDATOR"

// ValidatorConfig is the configuration with the enabled analyzers, and the reasons for disabled ones.
const ValidatorConfig = "tools/plugin-validator/config.yaml"

// ErrNoValidator means that the plugin validator is not installed.
var ErrNoValidator = errors.New("plugincheck2, Grafana's plugin validator, was not found; build it from " +
	"github.com/grafana/plugin-validator and put it on the PATH, or name it in " + ValidatorVariable)

// FindValidator returns the path of the plugin validator: that of [ValidatorVariable], otherwise plugincheck2 on the
// PATH. Without one, it returns [ErrNoValidator].
func FindValidator() (string, error) {
	if path := os.Getenv(ValidatorVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", ValidatorVariable, err)
		}
		return path, nil
	}
	path, err := exec.LookPath("plugincheck2")
	if err != nil {
		return "", ErrNoValidator
	}
	return path, nil
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
