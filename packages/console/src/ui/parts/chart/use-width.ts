import type { RefObject } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'

/** How wide an element is. Pictures are drawn to that size, so that their texts keep theirs. */
export function useWidth(element: RefObject<HTMLElement | null>, atFirst = 600): number {
  const [width, setWidth] = useState(atFirst)
  useLayoutEffect(() => {
    if (element.current === null) return undefined
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.max(120, Math.floor(entry.contentRect.width)))
    })
    setWidth(Math.max(120, Math.floor(element.current.getBoundingClientRect().width)))
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return width
}
