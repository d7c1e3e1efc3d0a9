package members

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"kvbooth/sidecar/loadgen/corpus"
)

// texts is a corpus as it is stored on the server.
type texts struct {
	Name     string           `json:"name"`
	Starters []corpus.Starter `json:"starters"`
	Length   int              `json:"length"`
}

// writeTexts stores a corpus under its digest, which it returns. A corpus that is stored is not
// written again.
func (b *bus) writeTexts(ctx context.Context, c *corpus.Corpus) (digest string, err error) {
	whole := c.Uncut()
	data, err := json.Marshal(texts{Name: whole.Name, Starters: whole.Starters, Length: c.Length})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	if _, err := b.texts.GetInfo(ctx, digest); err == nil {
		return digest, nil
	}
	_, err = b.texts.PutBytes(ctx, digest, data)
	return digest, err
}

// readTexts returns the corpus of a digest.
func (b *bus) readTexts(ctx context.Context, digest string) (*corpus.Corpus, error) {
	data, err := b.texts.GetBytes(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("the texts of the run: %w", err)
	}
	var t texts
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("the texts of the run: %w", err)
	}
	return (&corpus.Corpus{Name: t.Name, Starters: t.Starters}).Sized(t.Length), nil
}
