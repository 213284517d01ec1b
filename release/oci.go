package main

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// artifact is something that is no image and is kept in a registry like one.
type artifact struct {
	manifest, config []byte
	layer            v1.Layer
}

// newArtifact has one layer, and a configuration that only those read who know its type.
func newArtifact(configType, layerType types.MediaType, config, content []byte, annotations map[string]string) (v1.Image, error) {
	layer := static.NewLayer(content, layerType)

	layerDigest, err := layer.Digest()
	if err != nil {
		return nil, fmt.Errorf("computing the digest of a layer: %w", err)
	}

	configDigest, err := static.NewLayer(config, configType).Digest()
	if err != nil {
		return nil, fmt.Errorf("computing the digest of a configuration: %w", err)
	}

	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        v1.Descriptor{MediaType: configType, Size: int64(len(config)), Digest: configDigest},
		Layers:        []v1.Descriptor{{MediaType: layerType, Size: int64(len(content)), Digest: layerDigest}},
		Annotations:   annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}

	made, err := partial.CompressedToImage(&artifact{manifest: manifest, config: config, layer: layer})
	if err != nil {
		return nil, fmt.Errorf("making an artifact: %w", err)
	}

	return made, nil
}

func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// LayerByDigest also gives the configuration, which is kept like a layer.
func (a *artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if have, err := a.layer.Digest(); err != nil || have != digest {
		return nil, fmt.Errorf("there is no layer %s", digest)
	}

	return a.layer, nil
}
