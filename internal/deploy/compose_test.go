package deploy

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/pack"
	"kvbooth/internal/source"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

func load(t *testing.T) (root string, project *types.Project) {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	project, err = Compose(t.Context(), Variables...)
	require.NoError(t, err)
	return root, project
}

// Each service waits for those that the demo starts before it.
func TestServicesWaitForDependencies(t *testing.T) {
	root, project := load(t)
	stages := readDockerfile(t, root)
	after := map[string][]string{
		"cluster":    {},
		"prometheus": {"cluster"},
		"grafana":    {"prometheus"},
		"loadgen":    {"cluster", "grafana", "prometheus"},
	}
	require.ElementsMatch(t, []string{"cluster", "prometheus", "grafana", "loadgen"}, project.ServiceNames())
	for name, service := range project.Services {
		require.ElementsMatch(t, after[name], service.GetDependencies(), name)
		for other, dependency := range service.DependsOn {
			require.Equal(t, types.ServiceConditionHealthy, dependency.Condition, "%s must wait for %s", name, other)
		}
		require.NotNil(t, service.HealthCheck, name)
		require.Equal(t, "CMD", service.HealthCheck.Test[0], "%s: the project's images have no shell", name)
		if service.Build == nil {
			require.Regexp(t, `^(prom/prometheus|grafana/grafana):v?\d+\.\d+\.\d+$`, service.Image,
				"official, and of one version")
			continue
		}
		require.Equal(t, root, service.Build.Context)
		require.Equal(t, "deploy/Dockerfile", service.Build.Dockerfile)
		require.Contains(t, stages, service.Build.Target)
		require.Equal(t, "kvbooth/"+service.Build.Target, service.Image)
	}
}

// Ports are published on this machine only, each with the documented number. The cluster is not published, since it
// requires no token.
func TestPortsArePublishedLocally(t *testing.T) {
	_, project := load(t)
	published := map[string]string{}
	for name, service := range project.Services {
		for _, port := range service.Ports {
			ip, err := netip.ParseAddr(port.HostIP)
			require.NoError(t, err, "%s: %+v", name, port)
			require.True(t, ip.IsLoopback(), "%s: %s", name, ip)
			published[name] = port.Published
		}
	}
	require.Equal(t, map[string]string{"grafana": "3000", "prometheus": "9090", "loadgen": "8088"}, published)
}

// Mounted files are in the project or are sources of the package. Programs write to volumes only.
func TestMountsExistAndAreReadOnly(t *testing.T) {
	root, project := load(t)
	app := filepath.Join(root, pack.Dir, local.AppID)
	targets := map[string]string{}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeVolume {
				require.Contains(t, project.Volumes, volume.Source)
				continue
			}
			require.True(t, volume.ReadOnly, "%s: %s", name, volume.Source)
			targets[volume.Source] = volume.Target
			if volume.Source != app {
				_, err := os.Stat(volume.Source)
				require.NoError(t, err, name)
			}
		}
	}
	require.Equal(t, map[string]string{
		app:                                 "/var/lib/grafana/plugins/" + local.AppID,
		filepath.Join(root, "provisioning"): "/etc/grafana/provisioning",
		filepath.Join(root, "deploy", "prometheus.yml"): "/etc/prometheus/prometheus.yml",
	}, targets)
}

// Without a token or an administrator's password, Compose fails, and the message names the variable to set.
func TestSecretsAreRequired(t *testing.T) {
	for i, variable := range Variables {
		name, _, _ := strings.Cut(variable, "=")
		_, err := Compose(t.Context(), Variables[1-i])
		require.ErrorContains(t, err, name)
	}
	_, project := load(t)
	require.Equal(t, Password, *project.Services["grafana"].Environment["GF_SECURITY_ADMIN_PASSWORD"])
	for service, variable := range map[string]string{"loadgen": "LOADGEN_TOKEN", "grafana": "KVBOOTH_SIDECAR_TOKEN"} {
		require.Equal(t, Token, *project.Services[service].Environment[variable])
	}
}

// Grafana runs with the booth's settings, except for those of its image, and has the variables of its provisioning.
func TestGrafanaHasTheBoothsSettings(t *testing.T) {
	root, project := load(t)
	service := project.Services["grafana"]
	require.Equal(t, "grafana/grafana:"+local.OldestGrafana, service.Image)

	command, err := local.Grafana{}.Command(local.GrafanaOptions{
		Dir: t.TempDir(), Provisioning: filepath.Join(root, "provisioning"), Port: 3000,
		Plugins: map[string]string{local.AppID: filepath.Join(root, "src")},
	})
	require.NoError(t, err)
	image := regexp.MustCompile(`^GF_(PATHS_.*|LOG_MODE|SERVER_(PROTOCOL|HTTP_ADDR|HTTP_PORT))$`)
	want, have := map[string]string{"GF_SECURITY_ADMIN_PASSWORD": Password}, map[string]string{}
	for _, entry := range command.Env[len(process.Environment()):] {
		if name, value, _ := strings.Cut(entry, "="); !image.MatchString(name) {
			want[name] = value
		}
	}
	for name, value := range service.Environment {
		if strings.HasPrefix(name, "GF_") {
			have[name] = *value
		}
	}
	require.Equal(t, want, have)

	asked := regexp.MustCompile(`\$(KVBOOTH_[A-Z_]+)`)
	for _, name := range []string{"datasources/prometheus.yaml", "plugins/kvbooth.yaml", "alerting/rules.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "provisioning", name))
		require.NoError(t, err)
		for _, match := range asked.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, service.Environment, match[1], name)
		}
	}
}
