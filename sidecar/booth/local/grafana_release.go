package local

// The release of Grafana that is downloaded where none is installed. A newer one
// changes this file and no other.

// GrafanaRelease is the version that [InstallGrafana] downloads.
const GrafanaRelease = "12.2.0"

// grafanaDownloads is the folder of Grafana's archives.
const grafanaDownloads = "https://dl.grafana.com/oss/release"

// grafanaArchives are the archives of the release by Go's name of the system. Macs
// with Apple's processors run the one for Intel's.
var grafanaArchives = map[string]string{
	"linux/amd64":   "grafana-" + GrafanaRelease + ".linux-amd64.tar.gz",
	"linux/arm64":   "grafana-" + GrafanaRelease + ".linux-arm64.tar.gz",
	"darwin/amd64":  "grafana-" + GrafanaRelease + ".darwin-amd64.tar.gz",
	"darwin/arm64":  "grafana-" + GrafanaRelease + ".darwin-amd64.tar.gz",
	"windows/amd64": "grafana-" + GrafanaRelease + ".windows-amd64.zip",
}
