package httpd_test

import (
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/httpd/answer"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/corpus/enduser"
	"kvbooth/sidecar/sim"
)

var quotation = regexp.MustCompile(`"(.+)"`)

// The simulated cluster can play the end user: asked as the load generator asks,
// it gives a question about the answer's own words.
func TestPlaysTheEndUser(t *testing.T) {
	s, err := httpd.New(httpd.Options{Cluster: sim.DefaultOptions(sim.H200()), Engine: "trtllm", Speed: 50})
	require.NoError(t, err)
	defer s.Close()
	server := httptest.NewServer(s.Frontend())
	defer server.Close()
	q, err := enduser.New(enduser.Options{URL: server.URL})
	require.NoError(t, err)
	defer q.Close()
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for _, starter := range articles.Starters {
		asked := []string{q.Open(r, starter.Topic)}
		messages := []sim.Message{{Role: "user", Content: starter.Text + "\n\n" + asked[0]}}
		for range 4 {
			said := answer.Compose(messages, answer.Asked{Max: 830}).Text
			question := q.Follow(t.Context(), r, starter.Topic, asked, said)
			assert.Regexp(t, `^[A-Z].{10,150}\?$`, question)
			if subject := quotation.FindStringSubmatch(question); assert.NotNil(t, subject, question) {
				assert.True(t, strings.Contains(said, subject[1]), "%q is about none of the answer's words", question)
			}
			asked = append(asked, question)
			messages = append(messages, sim.Message{Role: "assistant", Content: said}, sim.Message{Role: "user", Content: question})
		}
		t.Log(starter.ID, asked[1:])
	}
	report := q.Report()
	assert.Empty(t, report.Fallbacks)
	assert.EqualValues(t, 4*len(articles.Starters), report.ByModel)
}
