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

{{- define "paddle-operator.account" -}}
{{- .Values.serviceAccount.name | default (ternary "paddle-manager-sa" "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "paddle-operator.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default (printf "v%s" .Chart.AppVersion)) | quote -}}
{{- end -}}
