// Package source finds the files of this module, and detects changes of a tool's module.
package source

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Root finds the module's root above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or its parents")
		}
		dir = parent
	}
}

// Sum returns a hash of the sources of the programs in cmd of the module in dir: its requirements and all Go files
// except tests.
func Sum(dir string) ([]byte, error) {
	programs, err := filepath.Glob(filepath.Join(dir, "cmd", "*", "*.go"))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, name := range append([]string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")}, programs...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(name), len(content))
		sum.Write(content)
	}
	return sum.Sum(nil), nil
}
