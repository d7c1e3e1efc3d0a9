package frontend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"kvbooth/internal/browser"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/booth/local"
)

// laterDir has the list of a later Grafana's packages, and the script that compares the app's imports with them.
const laterDir = "tools/grafana13"

// laterFiles are the files of [laterDir].
var laterFiles = []string{"package.json", "package-lock.json", "compare.mjs"}

// InstallLater installs the packages of the newest Grafana that the app is tried with, once, outside of this module,
// whose build manifest would name their Go files. It returns the folder of packages, or a [suite.Skipped] without
// Node.js.
func InstallLater(ctx context.Context) (string, error) {
	if _, err := browser.FindNode(ctx); errors.Is(err, browser.ErrNoNode) {
		return "", suite.Skipped(err.Error())
	} else if err != nil {
		return "", err
	}
	cache, err := local.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, filepath.Base(laterDir))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range laterFiles {
		text, err := os.ReadFile(filepath.Join(laterDir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	want, err := os.ReadFile(filepath.Join(dir, lock))
	if err != nil {
		return "", err
	}
	packages := filepath.Join(dir, "node_modules")
	marker := filepath.Join(packages, filepath.Base(installed))
	if have, err := os.ReadFile(marker); err == nil && bytes.Equal(have, want) {
		return packages, nil
	}
	fmt.Println("installing the packages of a later Grafana (about 560 MB, once)")
	if err := npm(ctx, "ci", "--prefix="+dir, "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return "", err
	}
	return packages, os.WriteFile(marker, want, 0o644)
}

// BuildPageWith builds the page with other packages into dir, and writes the overlay with which the compiler of Go
// embeds it in place of the built one. It returns the overlay's path.
func BuildPageWith(ctx context.Context, packages, dir string) (string, error) {
	page := filepath.Join(dir, "page")
	if err := npm(ctx, "run", "--silent", "build", "--", "--config-name="+string(Page), "--env", "packages="+packages,
		"--env", "page="+page); err != nil {
		return "", err
	}
	replaced := map[string]string{}
	embedded := filepath.Dir(builtFiles[Page])
	for _, folder := range []string{embedded, page} {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			rel, err := filepath.Rel(folder, name)
			if err != nil {
				return err
			}
			replaced[filepath.Join(embedded, rel)] = "" // removed
			if folder == page {
				replaced[filepath.Join(embedded, rel)] = name
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// CompareLater compares what the app imports of Grafana's packages with these versions of them, which it downloads. It
// returns how many versions it compared.
func CompareLater(ctx context.Context, packages string, versions ...string) (suite.Count, error) {
	downloads, err := os.MkdirTemp("", "grafana-packages-")
	if err != nil {
		return suite.Count{}, err
	}
	defer os.RemoveAll(downloads)
	script := filepath.Join(filepath.Dir(packages), "compare.mjs")
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, versions...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+downloads, "LEVITATE_CACHE=1") // downloads each version once
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return suite.Count{}, fmt.Errorf("compare.mjs: %w", err)
	}
	return suite.Count{Passed: len(versions)}, nil
}
