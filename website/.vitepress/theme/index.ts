import { type Theme, useData } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { nextTick, onMounted, watch } from 'vue'
import { followChoice, showClient } from './client-choice.ts'
import FirstSteps from './FirstSteps.vue'
import RaceStepper from './RaceStepper.vue'
import WhatBroke from './WhatBroke.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  setup() {
    const { page } = useData()
    onMounted(() => {
      followChoice()
      showClient()
    })
    watch(
      () => page.value.relativePath,
      () => nextTick(() => showClient()),
    )
  },
  enhanceApp({ app }) {
    app.component('FirstSteps', FirstSteps)
    app.component('RaceStepper', RaceStepper)
    app.component('WhatBroke', WhatBroke)
  },
} satisfies Theme
