package config

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The parts of a fleet parse the settings with which they are started: a member the keys and the address of the server,
// the coordinator everything that the user set, except members to start.
func TestFleetSettings(t *testing.T) {
	args := []string{
		"--members=2", "--target-url=http://a", "--twin-target-url=http://b", "--data-dir=d",
		"--members-fleet=one", "--log-level=warn",
	}
	environ := []string{
		"LOADGEN_TARGET_API_KEY=main", "LOADGEN_TWIN_TARGET_API_KEY=twin",
		"LOADGEN_FOLLOWUP_API_KEY=asks", "LOADGEN_MEMBERS_COUNT=3",
	}
	for _, command := range []string{"run", "trial"} {
		given := append([]string{command}, args...)
		c, _, err := Load(given, environ, io.Discard)
		require.NoError(t, err)
		require.Equal(t, 2, c.Members.Count)
		c.Members.NATS.URL, c.Members.NATS.Token = "nats://127.0.0.1:4222", "0123456789abcdef"

		member, joined, err := Load([]string{string(Joined)}, c.ForMember("member-1"), io.Discard)
		require.NoError(t, err)
		assert.Equal(t, Joined, joined)
		want := Members{Fleet: "one", Name: "member-1", NATS: c.Members.NATS}
		assert.Equal(t, want, member.Members)
		assert.Equal(t, []Secret{"main", "twin"}, []Secret{member.Target.APIKey, member.Twin.Target.APIKey})
		assert.Equal(t, c.Log, member.Log)
	}
}
