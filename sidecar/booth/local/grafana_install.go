package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// GrafanaMirrorVariable names the environment variable with the URL of a folder that has Grafana's archives and their
// .sha256 files and replaces Grafana's own.
const GrafanaMirrorVariable = "KVBOOTH_GRAFANA_MIRROR"

// InstallGrafana returns the Grafana of version [GrafanaRelease] in cacheDir. The first call downloads it and writes
// its progress. It fails within five seconds if the server cannot be reached. A failed download leaves nothing
// behind. Of several processes, one downloads and the others wait.
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

// downloadGrafana downloads a Grafana to a folder. A failure leaves nothing behind.
func downloadGrafana(ctx context.Context, home string, progress io.Writer) error {
	archive, ok := grafanaArchives[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no archive is available for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	folder := grafanaDownloads
	if mirror := os.Getenv(GrafanaMirrorVariable); mirror != "" {
		folder = strings.TrimSuffix(mirror, "/")
	}
	return release{
		title: "Grafana " + GrafanaRelease, folder: folder, file: archive, sums: folder + "/" + archive + ".sha256",
		hint: "--grafana=off starts the booth without it",
		check: func(ctx context.Context, home string) error {
			_, err := installedGrafana(ctx, home)
			return err
		},
	}.install(ctx, home, progress)
}
