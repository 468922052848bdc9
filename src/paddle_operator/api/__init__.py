"""What users write and what we read: frozen structs, names, validation, the CRD. No I/O, no clock."""
