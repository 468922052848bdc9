{{- /* The namespaces that are followed, as a JSON list; an empty one: all. */}}
{{- define "paddle-operator.followed" -}}
{{- $given := .Values.watchNamespace -}}
{{- if kindIs "invalid" $given -}}
{{- list .Release.Namespace | toJson -}}
{{- else if kindIs "slice" $given -}}
{{- $given | toJson -}}
{{- else -}}
{{- list $given | compact | toJson -}}
{{- end -}}
{{- end -}}

{{- /* What comes after /manager, as a YAML list. An option that is not set is left to its default. */}}
{{- define "paddle-operator.args" -}}
{{- $options := dict
  "namespace" (include "paddle-operator.followed" . | fromJsonArray | join ",")
  "scheduling" .Values.scheduling
  "etcd-server" .Values.etcdServer
  "initImage" .Values.initImage
  "log-format" .Values.logFormat
  "log-level" .Values.logLevel -}}
{{- include "paddle-operator.no-fixed-option" . -}}
- --leader-elect
{{- range $name := list "namespace" "scheduling" "etcd-server" "initImage" "log-format" "log-level" }}
{{- with get $options $name }}
- {{ printf "--%s=%s" $name . | quote }}
{{- end }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Options that would contradict other objects of this chart, and why; also as Go programs take them. */}}
{{- define "paddle-operator.no-fixed-option" -}}
{{- $fixed := dict
  "namespace" "set watchNamespace, which also makes the Roles"
  "leader-elect" "it is always on, as two operators run in a rolling update"
  "lease-name" "the Role is for one Lease only; releases in different namespaces do not share it"
  "lease-namespace" "the Role is for the Lease in the release's own namespace"
  "metrics-bind-address" "the pod's port for metrics is 8080"
  "health-probe-bind-address" "the pod's probes go to port 8081" -}}
{{- range $argument := .Values.extraArgs -}}
{{- $name := regexReplaceAll "^--?(no-)?([^=]*).*$" $argument "${2}" -}}
{{- with get $fixed $name -}}
{{- fail (printf "extraArgs: %s cannot be set: %s" $argument .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "paddle-operator.account" -}}
{{- .Values.serviceAccount.name | default (ternary "paddle-manager-sa" "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "paddle-operator.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default (printf "v%s" .Chart.AppVersion)) | quote -}}
{{- end -}}
