package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// GrafanaMirrorVariable names the environment variable with the URL of a folder that
// has Grafana's archives and their .sha256 files, to be used in place of Grafana's own.
const GrafanaMirrorVariable = "KVBOOTH_GRAFANA_MIRROR"

// InstallGrafana gives the Grafana of version [GrafanaRelease] in cacheDir, which the
// first call downloads, with its progress on the writer. Where the server cannot be
// reached, the error comes within five seconds. What was broken off or is not what it
// should be leaves nothing behind. Of several processes one downloads and the others
// wait.
func InstallGrafana(ctx context.Context, cacheDir string, progress io.Writer) (g Grafana, err error) {
	home := filepath.Join(cacheDir, "grafana-"+GrafanaRelease)
	err = installOnce(ctx, home, "Grafana", progress, func() (done bool) {
		g, err = installedGrafana(ctx, home)
		return err == nil
	}, func() error {
		if err := downloadGrafana(ctx, home, progress); err != nil {
			return err
		}
		g, err = installedGrafana(ctx, home)
		return err
	})
	if err != nil {
		return Grafana{}, fmt.Errorf("download Grafana %s: %w", GrafanaRelease, err)
	}
	return g, nil
}

// downloadGrafana puts a whole Grafana in a folder, or nothing.
func downloadGrafana(ctx context.Context, home string, progress io.Writer) error {
	a, ok := grafanaArchives[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no archive is available for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	folder := grafanaDownloads
	if mirror := os.Getenv(GrafanaMirrorVariable); mirror != "" {
		folder = strings.TrimSuffix(mirror, "/")
	}
	work := home + ".part"
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(work)

	d := download{url: folder + "/" + a.name, sha256: a.sha256, file: filepath.Join(work, a.name), progress: progress}
	fmt.Fprintf(progress, "Grafana is not installed: downloading version %s, once; use --grafana=off to skip it\n", GrafanaRelease)
	if err := d.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(progress, "unpacking Grafana %s into %s\n", GrafanaRelease, home)
	unpacked := filepath.Join(work, "unpacked")
	if err := unpack(ctx, d.file, unpacked); err != nil {
		return fmt.Errorf("unpack %s: %w", a.name, err)
	}
	entries, err := os.ReadDir(unpacked)
	if err != nil {
		return err
	}
	if len(entries) != 1 { // an archive holds one folder, whose name has varied
		return fmt.Errorf("%s contains %d directories instead of one", a.name, len(entries))
	}
	inner := filepath.Join(unpacked, entries[0].Name())
	if _, err := installedGrafana(ctx, inner); err != nil {
		return fmt.Errorf("%s contains no working Grafana: %w", a.name, err)
	}
	return errors.Join(os.RemoveAll(home), os.Rename(inner, home))
}
