"""predictsim (Gaussier et al., SC 2015): EASY with predicted run times."""
