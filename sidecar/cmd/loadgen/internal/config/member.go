package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ForMember returns the environment variables, "NAME=value" each, that a member on this machine needs
// besides the inherited ones: the keys, which have no flags, and the address of the server. The
// coordinator sends the member its work.
func (c *Config) ForMember(name string) (env []string) {
	n := c.Members.NATS
	for _, v := range [][2]string{
		{"members.name", name},
		{"members.fleet", c.Members.Fleet},
		{"members.nats.url", n.URL},
		{"members.nats.token", string(n.Token)},
		{"members.nats.nkey_file", n.NKeyFile},
		{"members.nats.ca_file", n.CAFile},
		{"target.api_key", string(c.Target.APIKey)},
		{"twin.target.api_key", string(c.Twin.Target.APIKey)},
		{"followup.api_key", string(c.Followup.APIKey)},
		{"target.cert_file", c.Target.CertFile},
		{"target.key_file", c.Target.KeyFile},
		{"twin.target.cert_file", c.Twin.Target.CertFile},
		{"twin.target.key_file", c.Twin.Target.KeyFile},
		{"followup.cert_file", c.Followup.CertFile},
		{"followup.key_file", c.Followup.KeyFile},
		{"log.level", c.Log.Level},
		{"log.format", c.Log.Format},
	} {
		if v[1] != "" {
			env = append(env, variable(v[0])+"="+v[1])
		}
	}
	for name, a := range map[string]Access{
		"target": c.Target.Access, "twin.target": c.Twin.Target.Access,
		"followup": c.Followup.Access,
	} {
		env = append(env, a.headersFor(name)...)
	}
	return env
}

// headersFor passes headers in variables, each in one of its own, because a value may contain a comma.
func (a Access) headersFor(section string) (env []string) {
	var entries []string
	for i, name := range slices.Sorted(maps.Keys(a.Opened.Headers)) {
		own := fmt.Sprintf("KVBOOTH_%s_HEADER_%d", strings.ToUpper(strings.ReplaceAll(section, ".", "_")), i)
		entries = append(entries, name+"=env:"+own)
		env = append(env, own+"="+a.Opened.Headers[name])
	}
	if len(entries) > 0 {
		env = append(env, variable(section+".headers")+"="+strings.Join(entries, ","))
	}
	return env
}

// ForCoordinator returns the arguments and the variables ("NAME=value") that this process adds to its own for a
// coordinator in a separate process. They make it start no members and connect to the server at c.Members.NATS, with
// its token in the environment. A token from a file is left out: the coordinator reads the file itself.
func (c *Config) ForCoordinator() (args, env []string) {
	args = []string{"--members-count=0", "--members-nats-url=" + c.Members.NATS.URL}
	if c.Members.NATS.Token != "" && c.Members.NATS.TokenFile == "" {
		env = append(env, variable("members.nats.token")+"="+string(c.Members.NATS.Token))
	}
	return args, env
}
