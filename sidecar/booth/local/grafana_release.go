package local

// The release of Grafana that is downloaded if none is installed. An update changes only this file.

// GrafanaRelease is the version that [InstallGrafana] downloads.
const GrafanaRelease = "12.2.0"

// grafanaDownloads is the URL of the folder with Grafana's archives.
const grafanaDownloads = "https://dl.grafana.com/oss/release"

// grafanaArchives are the archives of the release by system. Macs with Apple's processors run the one for Intel's.
var grafanaArchives = map[string]string{
	"linux/amd64":   "grafana-" + GrafanaRelease + ".linux-amd64.tar.gz",
	"linux/arm64":   "grafana-" + GrafanaRelease + ".linux-arm64.tar.gz",
	"darwin/amd64":  "grafana-" + GrafanaRelease + ".darwin-amd64.tar.gz",
	"darwin/arm64":  "grafana-" + GrafanaRelease + ".darwin-amd64.tar.gz",
	"windows/amd64": "grafana-" + GrafanaRelease + ".windows-amd64.zip",
}
