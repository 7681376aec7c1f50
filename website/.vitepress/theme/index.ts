import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import RaceStepper from './RaceStepper.vue'
import WhatBroke from './WhatBroke.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('RaceStepper', RaceStepper)
    app.component('WhatBroke', WhatBroke)
  },
} satisfies Theme
