package pack

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
)

// fakeValidator makes a program the validator that has a finding with the analyzer "bad" and none with others.
func fakeValidator(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it is a script for a Unix shell")
	}
	path := filepath.Join(t.TempDir(), "plugincheck2")
	script := "#!/bin/sh\ncase \"$*\" in *'-analyzer bad '*) echo 'warning: it is bad'; exit 1;; *'-strict " +
		"-analyzer '*'-sourceCodeUri file:///'*app.zip) echo;; *) exit 2;; esac\n"
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

func TestValidateRunsEnabledAnalyzers(t *testing.T) {
	validator, config := fakeValidator(t), filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(config, []byte(text), 0o600)) }
	out := new(strings.Builder)

	write("analyzers: {good: {enabled: true}, rules: {rules: {some: {enabled: false}}}, bad: {enabled: false}}")
	n, err := Validate(t.Context(), out, validator, config, "app.zip")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "running 2 analyzers on app.zip\n", out.String())

	write("analyzers: {good: {enabled: true}, bad: {enabled: true}}")
	_, err = Validate(t.Context(), out, validator, config, "app.zip")
	require.EqualError(t, err, "bad: exit status 1")
	require.Contains(t, out.String(), "bad: warning: it is bad\n")

	_, err = Validate(t.Context(), out, validator, config+"-not-there", "app.zip")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFindValidatorByVariablePathAndBuild(t *testing.T) {
	path := fakeValidator(t)
	t.Setenv(ValidatorVariable, path)
	found, err := FindValidator("")
	require.NoError(t, err)
	require.Equal(t, path, found)

	t.Setenv(ValidatorVariable, path+"-not-there")
	_, err = FindValidator("")
	require.ErrorContains(t, err, ValidatorVariable)

	t.Setenv(ValidatorVariable, "")
	t.Setenv("PATH", filepath.Dir(path))
	found, err = FindValidator("")
	require.NoError(t, err)
	require.Equal(t, path, found)

	t.Setenv("PATH", t.TempDir())
	found, err = FindValidator(path)
	require.NoError(t, err)
	require.Equal(t, path, found)

	_, err = FindValidator(path + "-not-built")
	require.ErrorIs(t, err, ErrNoValidator)
}

func TestDisabledAnalyzersHaveReasons(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	path := filepath.Join(root, ValidatorConfig)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "enabled: false") {
			require.Regexp(t, `# \S+`, line)
		}
	}
	on, err := analyzersOf(path)
	require.NoError(t, err)
	for _, name := range []string{"archive", "backendbinary", "binarypermissions", "go-manifest", "sdkusage"} {
		require.Contains(t, on, name)
	}
	require.NotContains(t, on, "metadatavalid")
}
