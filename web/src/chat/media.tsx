import { Icon } from '../shared/icons.js'
import type { MediaPart } from '../state/api.js'

/** A picture, or the name of a file. Nothing is loaded from other hosts. */
export function Media({ media }: { media: MediaPart }) {
  const { mimeType, data, name, url } = media
  if (data !== undefined && /^image\/(png|jpeg|gif|webp)$/.test(mimeType)) {
    return (
      <img className="picture" src={`data:${mimeType};base64,${data}`} alt={name ?? 'Attached picture'} />
    )
  }
  const label = name ?? url ?? mimeType
  return (
    <span className="file-chip">
      <Icon name="file" />
      <span>{label}</span>
    </span>
  )
}
