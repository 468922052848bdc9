"""Everything that installs the operator, from one source: deploy/, charts/ and config/.

    python -m dev.manifests

writes the files anew; `make generate` does this, and tests/test_generated.py wants no difference. Written by
hand is what only a chart or kustomize has: values.yaml with its schema, _helpers.tpl and NOTES.txt, and each
kustomization.yaml.
"""
