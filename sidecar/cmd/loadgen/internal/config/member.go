package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ForMember returns the environment variables, "NAME=value" each, that a member on this machine needs besides the
// inherited ones: the keys, which have no flags, and the address of the server. Turns bring the rest.
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
		{"target.cert_file", c.Target.CertFile},
		{"target.key_file", c.Target.KeyFile},
		{"twin.target.cert_file", c.Twin.Target.CertFile},
		{"twin.target.key_file", c.Twin.Target.KeyFile},
		{"log.level", c.Log.Level},
		{"log.format", c.Log.Format},
	} {
		if v[1] != "" {
			env = append(env, variable(v[0])+"="+v[1])
		}
	}
	for name, a := range map[string]Access{"target": c.Target.Access, "twin.target": c.Twin.Target.Access} {
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
