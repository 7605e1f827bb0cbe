import { useEffect } from 'react'

const NAME = 'found-words'
/** More places than a screen can show. */
const MOST_RANGES = 500

/** Colours the words wherever they are drawn in the chat, without a change to the page. Where browsers cannot, nothing. */
export function useMarkedWords(text: string): void {
  useEffect(() => {
    const thread = document.querySelector('.thread')
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    if (!thread || words.length === 0 || !('highlights' in CSS)) return
    const mark = () => CSS.highlights.set(NAME, new Highlight(...rangesOf(thread, words)))
    let frame = 0
    const observer = new MutationObserver(() => {
      cancelAnimationFrame(frame)
      frame = requestAnimationFrame(mark)
    })
    observer.observe(thread, { childList: true, subtree: true, characterData: true })
    mark()
    return () => {
      observer.disconnect()
      cancelAnimationFrame(frame)
      CSS.highlights.delete(NAME)
    }
  }, [text])
}

function rangesOf(thread: Element, words: readonly string[]): Range[] {
  const walker = document.createTreeWalker(thread, NodeFilter.SHOW_TEXT)
  const ranges: Range[] = []
  for (let node = walker.nextNode(); node && ranges.length < MOST_RANGES; node = walker.nextNode()) {
    const text = (node.nodeValue ?? '').toLowerCase()
    // Lower case is longer for a few letters; their places would be wrong.
    if (text.length !== node.nodeValue?.length) continue
    for (const word of words) {
      for (
        let at = text.indexOf(word);
        at >= 0 && ranges.length < MOST_RANGES;
        at = text.indexOf(word, at + 1)
      ) {
        const range = new Range()
        range.setStart(node, at)
        range.setEnd(node, at + word.length)
        ranges.push(range)
      }
    }
  }
  return ranges
}
