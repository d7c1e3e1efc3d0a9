package api_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestParseLevels(t *testing.T) {
	held := func(text string) (all []int) {
		ranges, err := api.ParseLevels(text)
		require.NoError(t, err, text)
		for level := range 200 {
			if api.Holds(ranges, api.AtConversations(level)) {
				all = append(all, level)
			}
		}
		return all
	}
	assert.Equal(t, []int{60}, held("60"))
	assert.Equal(t, []int{60, 80, 100, 150}, held("60-100/20, 150"))
	assert.Equal(t, []int{9, 10, 11}, held("9-11"))
	assert.True(t, api.Holds(nil, api.AtConversations(7)), "all")
	for _, text := range []string{
		"", "a", "60-", "-60", "100-60", "60/20", "60-100/0", "60-100/x", "0", "1,,2", "60--70",
	} {
		_, err := api.ParseLevels(text)
		assert.ErrorContains(t, err, "levels: ", text)
	}
}
