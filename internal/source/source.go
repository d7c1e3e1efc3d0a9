// Package source finds the files of this module.
package source

import (
	"errors"
	"os"
	"path/filepath"
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
			return "", errors.New("no go.mod in or above the working directory")
		}
		dir = parent
	}
}
